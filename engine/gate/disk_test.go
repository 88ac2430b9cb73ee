package gate_test

import realdisk "github.com/nod-agents/nod/app/disk"

// disk is the real file system.
type disk = realdisk.Files
