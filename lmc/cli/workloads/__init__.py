"""The workloads of SGLang's paper: programs, rows, and who runs them."""
