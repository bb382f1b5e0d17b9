"""Quietens TensorFlow's start-up messages before the first test module imports it."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
