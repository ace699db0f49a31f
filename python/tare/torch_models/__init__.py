# SPDX-License-Identifier: Apache-2.0
"""Models on their way through torch's quantization, read as what they are."""
