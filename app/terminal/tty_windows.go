package terminal

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

// tty is a console whose keys come at once and unechoed.
type tty struct {
	in, out         windows.Handle
	savedIn, savedO uint32
	wake            windows.Handle
}

// openTTY takes the console over. The error wraps ErrNoTerminal if it is none.
func openTTY(in, out *os.File) (*tty, error) {
	t := &tty{in: windows.Handle(in.Fd()), out: windows.Handle(out.Fd())}
	if err := windows.GetConsoleMode(t.in, &t.savedIn); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoTerminal, in.Name(), err)
	}
	if err := windows.GetConsoleMode(t.out, &t.savedO); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoTerminal, out.Name(), err)
	}
	wake, err := windows.CreateEvent(nil, 1, 0, nil)
	if err != nil {
		return nil, fmt.Errorf("opening the console: %w", err)
	}
	t.wake = wake
	if err := t.enter(); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *tty) enter() error {
	mode := t.savedIn &^ (windows.ENABLE_LINE_INPUT | windows.ENABLE_ECHO_INPUT)
	mode |= windows.ENABLE_PROCESSED_INPUT | windows.ENABLE_VIRTUAL_TERMINAL_INPUT
	if err := windows.SetConsoleMode(t.in, mode); err != nil {
		return fmt.Errorf("taking the console over: %w", err)
	}
	if err := windows.SetConsoleMode(t.out, t.savedO|windows.ENABLE_PROCESSED_OUTPUT|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING); err != nil {
		return fmt.Errorf("taking the console over: %w", err)
	}
	return nil
}

func (t *tty) leave() {
	_ = windows.SetConsoleMode(t.in, t.savedIn)
	_ = windows.SetConsoleMode(t.out, t.savedO)
}

func (t *tty) signals() <-chan os.Signal { return nil }

func (t *tty) job(os.Signal, func(), func()) bool { return false }

func (t *tty) read(each func([]byte)) error {
	buf := make([]byte, 4<<10)
	var burst []byte
	for {
		wait := uint32(windows.INFINITE)
		if len(burst) > 0 {
			wait = uint32(quiet.Milliseconds())
		}
		ev, err := windows.WaitForMultipleObjects([]windows.Handle{t.wake, t.in}, false, wait)
		switch {
		case err != nil && !errors.Is(err, windows.WAIT_TIMEOUT):
			return fmt.Errorf("waiting for a key: %w", err)
		case ev == uint32(windows.WAIT_TIMEOUT):
			each(burst)
			burst = nil
			continue
		case ev == windows.WAIT_OBJECT_0:
			return nil
		}
		var n uint32
		if err := windows.ReadFile(t.in, buf, &n, nil); err != nil {
			return fmt.Errorf("reading a key: %w", err)
		}
		if burst = append(burst, buf[:n]...); len(burst) > maxBurst {
			each(burst)
			burst = append(burst[:0:0], 0, 0) // what follows is no single key
		}
	}
}

func (t *tty) wakeUp() { _ = windows.SetEvent(t.wake) }

func (t *tty) close() {
	t.leave()
	_ = windows.CloseHandle(t.wake)
}

func (t *tty) size() (width, height int) {
	var info windows.ConsoleScreenBufferInfo
	if err := windows.GetConsoleScreenBufferInfo(t.out, &info); err != nil {
		return 80, 24
	}
	return int(info.Window.Right-info.Window.Left) + 1, int(info.Window.Bottom-info.Window.Top) + 1
}
