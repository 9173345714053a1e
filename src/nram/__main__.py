import sys

from nram.cli import main

sys.exit(main())
