package heartbeat

import (
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelPulse is a Pulse that leaves the process asleep between two ticks. A
// time.Ticker wakes the runtime's monitor thread along with the goroutine, and
// that thread then looks around for a while: five to fourteen wake-ups a tick
// were measured. A timer of the kernel's, read without telling the scheduler,
// is one.
type kernelPulse struct {
	file *os.File
	raw  syscall.RawConn
}

func systemPulse(every time.Duration) (Pulse, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a timer: %w", err)
	}
	t := unix.NsecToTimespec(every.Nanoseconds())
	if err := unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Interval: t, Value: t}, nil); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("setting a timer: %w", err)
	}
	p := &kernelPulse{file: os.NewFile(uintptr(fd), "timer")}
	if p.raw, err = p.file.SyscallConn(); err != nil {
		p.file.Close()
		return nil, fmt.Errorf("reading a timer: %w", err)
	}
	return p, nil
}

// Wait returns at the next tick, and false once the pulse is stopped.
func (p *kernelPulse) Wait() bool {
	var ticks [8]byte
	ticked := false
	err := p.raw.Read(func(fd uintptr) bool {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&ticks[0])), uintptr(len(ticks)))
		ticked = errno == 0 && n == uintptr(len(ticks))
		return errno != unix.EAGAIN && errno != unix.EINTR
	})
	return err == nil && ticked
}

// Stop ends the pulse; a wait under way returns false.
func (p *kernelPulse) Stop() { p.file.Close() }
