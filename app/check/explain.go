package check

import (
	"strings"
)

func (v verdict) explain(k *call) string { return strings.ToUpper(v.Action.String()) + "\n" }
