"""Other systems behind the engines' interface, to compare with."""
