"""Engines beside ours: each in a process and a virtual environment of its own, asked over standard input and output."""
