package heartbeat

import "time"

// Pulse ticks until it is stopped.
type Pulse interface {
	// Wait returns at the next tick, and false once the pulse is stopped.
	Wait() bool
	// Stop ends the pulse; a Wait under way returns false. It is called once.
	Stop()
}

// tickPulse is a Pulse of package time.
type tickPulse struct {
	ticker *time.Ticker
	quit   chan struct{}
}

func newTickPulse(every time.Duration) (Pulse, error) {
	return &tickPulse{time.NewTicker(every), make(chan struct{})}, nil
}

func (p *tickPulse) Wait() bool {
	select {
	case <-p.ticker.C:
		return true
	case <-p.quit:
		return false
	}
}

func (p *tickPulse) Stop() {
	p.ticker.Stop()
	close(p.quit)
}
