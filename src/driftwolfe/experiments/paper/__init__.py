"""The paper's two experiments: what is run, how c is chosen, and whether its claims hold."""
