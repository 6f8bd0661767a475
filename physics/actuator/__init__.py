"""Actuators: from controls and activations, through a transmission, to forces of joints.

This package has gains and biases, servos, DC motors and transmissions. Delays of controls are part of the
state, because they outlast a step.
"""
