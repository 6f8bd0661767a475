"""Actuators: from controls and activations, through a transmission, to forces of joints.

Here live gains and biases, servos, DC motors, and what an actuator pulls on. Delays of controls are part of
the state, as they outlast a step.
"""
