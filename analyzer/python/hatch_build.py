# SPDX-License-Identifier: MIT OR Apache-2.0
"""Puts the program into the wheel as a script, if scripts/wheel.sh says which and for which platform; pip then installs it
beside `python`, with the right to be executed. Otherwise the wheel is of Python alone, for any machine."""

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

OWN = "MIT OR Apache-2.0"


class Licence(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        # The program contains BPF code.
        has_program = os.environ.get("MOSTRACE_WHEEL_PROGRAM")
        metadata["license"] = f"({OWN}) AND GPL-2.0-only" if has_program else OWN


class Program(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        program = os.environ.get("MOSTRACE_WHEEL_PROGRAM")
        if not program or self.target_name != "wheel" or version == "editable":
            return
        build_data["shared_scripts"] = {program: "mostrace"}
        build_data["extra_metadata"] = {"../../LICENSE-GPL-2.0": "LICENSE-GPL-2.0"}
        build_data["pure_python"] = False
        # The program uses nothing of Python's, so that any Python 3 will do.
        build_data["tag"] = f"py3-none-{os.environ['MOSTRACE_WHEEL_PLATFORM']}"
