"""What is measured. A scenario is a function that takes a fresh server and gives figures."""
