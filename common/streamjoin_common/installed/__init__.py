"""What an installation has: files that travel with it, what works, what a shell completes."""
