"""What goes in: files, columns, strings, batches."""
