"""The exit codes of `lmc`."""

OK = 0
#: The program is wrong, or a file of it or of the model cannot be used.
WRONG = 1
#: The command line is wrong.
USAGE = 2
#: The program stopped while it ran.
FAILED = 3
#: A test of the program failed.
TEST_FAILED = 4
#: A fault inside `lmc`.
INTERNAL = 70
#: Ctrl-C, as shells count: 128 + SIGINT.
INTERRUPTED = 130
#: The reader of our output went away: 128 + SIGPIPE.
PIPE = 141
