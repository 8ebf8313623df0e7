"""What somebody who may know keys says of one."""

from __future__ import annotations

import re
from enum import Enum

KEY_ID = re.compile(r"[!-9;-~]{1,128}")
"""An id that may go into a header or an address: without ':' and blanks."""


class No(Enum):
    """Why it is nobody."""

    WRONG = "the id is known, the secret is not its, or it opens nothing now"
    UNKNOWN = "another may know the id"
