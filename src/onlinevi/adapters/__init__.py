"""The ways in: the command line, scikit-learn and River. Each turns what its users have into rows, and asks a learner."""
