//go:build unix

package reviewlog

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const noFollow = unix.O_NOFOLLOW

// claimTime is far more than putting a file aside takes.
const claimTime = 100 * time.Millisecond

// claim keeps other processes from putting the file aside until release. Where
// another does so now, it waits for that, but not for a lock that stays.
func claim(path string) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|noFollow, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil // it has been put aside
	}
	if err != nil {
		return nil, err
	}
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			break
		}
		if time.Since(begin) > claimTime {
			err = errors.New("another program has locked it")
			break
		}
	}
	return nil, errors.Join(err, f.Close())
}
