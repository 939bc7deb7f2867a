# SPDX-License-Identifier: MIT OR Apache-2.0
import sys

from .cli import main

sys.exit(main())
