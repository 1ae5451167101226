"""Verbs about the installation itself: what works here, and completion in shells."""
