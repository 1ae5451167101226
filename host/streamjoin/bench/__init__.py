"""Runs engines side by side, checks them and records what they did."""
