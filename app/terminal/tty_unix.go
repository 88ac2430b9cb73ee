//go:build unix

package terminal

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tty is a terminal whose keys come at once and unechoed. Signals of the
// keyboard and the output's line ends stay as they are, so that ^C and ^Z work
// as everywhere and a log line of somebody else does not stagger.
type tty struct {
	in, out int
	saved   unix.Termios
	wake    [2]int // a pipe that ends the reading

	stopped chan os.Signal // SIGTSTP, SIGCONT, SIGWINCH
}

// openTTY takes the terminal over. The error wraps ErrNoTerminal if it is none.
func openTTY(in, out *os.File) (*tty, error) {
	t := &tty{in: int(in.Fd()), out: int(out.Fd()), stopped: make(chan os.Signal, 4)}
	saved, err := unix.IoctlGetTermios(t.in, getTermios)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoTerminal, in.Name(), err)
	}
	if _, err := unix.IoctlGetTermios(t.out, getTermios); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoTerminal, out.Name(), err)
	}
	t.saved = *saved
	if t.in >= unix.FD_SETSIZE {
		return nil, fmt.Errorf("%w: its descriptor %d is out of range", ErrNoTerminal, t.in)
	}
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		return nil, fmt.Errorf("opening the terminal: %w", err)
	}
	unix.CloseOnExec(p[0])
	unix.CloseOnExec(p[1])
	t.wake = p
	if err := t.enter(); err != nil {
		unix.Close(p[0])
		unix.Close(p[1])
		return nil, err
	}
	signal.Notify(t.stopped, unix.SIGTSTP, unix.SIGCONT, unix.SIGWINCH)
	return t, nil
}

func (t *tty) enter() error {
	raw := t.saved
	raw.Lflag &^= unix.ICANON | unix.ECHO | unix.IEXTEN
	raw.Iflag &^= unix.ICRNL | unix.INLCR
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(t.in, setTermios, &raw); err != nil {
		return fmt.Errorf("taking the terminal over: %w", err)
	}
	return nil
}

func (t *tty) leave() { _ = unix.IoctlSetTermios(t.in, setTermios, &t.saved) }

// signals are SIGTSTP, SIGCONT and SIGWINCH, for job.
func (t *tty) signals() <-chan os.Signal { return t.stopped }

// job does what a signal of job control wants; leave and enter are called
// around a stop. It reports whether the screen must be drawn again.
func (t *tty) job(s os.Signal, leave, enter func()) bool {
	switch s {
	case unix.SIGTSTP:
		leave()
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		return false // SIGCONT follows
	case unix.SIGCONT:
		enter()
	}
	return true
}

// read calls each with every burst of bytes until the terminal ends, which is
// an error, or wakeUp. Bytes that follow one another within quiet are a burst.
func (t *tty) read(each func([]byte)) error {
	buf := make([]byte, 4<<10)
	var burst []byte
	for {
		var wait *unix.Timeval
		if len(burst) > 0 {
			tv := unix.NsecToTimeval(int64(quiet / time.Nanosecond))
			wait = &tv
		}
		var fds unix.FdSet
		fds.Set(t.in)
		fds.Set(t.wake[0])
		n, err := unix.Select(max(t.in, t.wake[0])+1, &fds, nil, nil, wait)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("waiting for a key: %w", err)
		case n == 0:
			each(burst)
			burst = nil
			continue
		case fds.IsSet(t.wake[0]):
			return nil
		}
		n, err = unix.Read(t.in, buf)
		switch {
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return fmt.Errorf("reading a key: %w", err)
		case n == 0:
			return errors.New("the terminal was closed")
		}
		if burst = append(burst, buf[:n]...); len(burst) > maxBurst {
			each(burst)
			burst = append(burst[:0:0], 0, 0) // what follows is no single key
		}
	}
}

// wakeUp ends read.
func (t *tty) wakeUp() { _, _ = unix.Write(t.wake[1], []byte{0}) }

// close gives the terminal back; read has ended.
func (t *tty) close() {
	signal.Stop(t.stopped)
	t.leave()
	unix.Close(t.wake[0])
	unix.Close(t.wake[1])
}

// size is the terminal's width and height in characters.
func (t *tty) size() (width, height int) {
	ws, err := unix.IoctlGetWinsize(t.out, unix.TIOCGWINSZ)
	if err != nil || ws.Col == 0 || ws.Row == 0 {
		return 80, 24
	}
	return int(ws.Col), int(ws.Row)
}
