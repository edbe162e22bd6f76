from __future__ import annotations

import sys
from pathlib import Path

# Behind the others: there is more than one conftest.
sys.path.append(str(Path(__file__).parent))
