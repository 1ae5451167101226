"""Sliding-window joins: each arriving tuple meets the opposite stream's window."""
