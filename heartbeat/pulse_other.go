//go:build !linux

package heartbeat

import "time"

// pulse is a ticker whose wait ends when it is stopped.
type pulse struct {
	ticker *time.Ticker
	quit   chan struct{}
}

func newPulse(every time.Duration) (*pulse, error) {
	return &pulse{time.NewTicker(every), make(chan struct{})}, nil
}

// wait returns at the next tick, and false once the pulse is stopped.
func (p *pulse) wait() bool {
	select {
	case <-p.ticker.C:
		return true
	case <-p.quit:
		return false
	}
}

// stop ends the pulse; a wait under way returns false. It is called once.
func (p *pulse) stop() {
	p.ticker.Stop()
	close(p.quit)
}
