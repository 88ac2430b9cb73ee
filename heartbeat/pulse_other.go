//go:build !linux

package heartbeat

import "time"

func systemPulse(every time.Duration) (Pulse, error) { return newTickPulse(every) }
