// Package policyfile reads policy files from disk and knows where they are.
package policyfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/nod-agents/nod/engine/policy"
)

// Disk reads policy files from the file system. It implements policy.Files.
type Disk struct{}

// Identify returns the identity of the file that name leads to, symbolic links
// followed.
func (Disk) Identify(name string) (policy.Identity, error) {
	info, err := os.Lstat(name)
	link := err == nil && info.Mode()&fs.ModeSymlink != 0
	if link {
		info, err = os.Stat(name)
	}
	if err != nil {
		return policy.Identity{}, absent(name, link, err)
	}
	id := policy.Identity{Size: info.Size(), ModTime: info.ModTime().UnixNano()}
	id.Device, id.Inode, id.Change = inode(info)
	return id, nil
}

// Read returns a regular file of at most policy.MaxBytes.
func (Disk) Read(name string) ([]byte, error) {
	data, regular, err := read(name, policy.MaxBytes+1)
	switch {
	case err != nil:
		return nil, err
	case !regular:
		return nil, errors.New("it is no regular file")
	case len(data) > policy.MaxBytes:
		return nil, fmt.Errorf("it is larger than %d bytes", policy.MaxBytes)
	}
	return data, nil
}

// absent tells a file that is not there from one that cannot be reached. A
// plain file where a directory would be means that there is none; a link that
// leads nowhere, be it the file's or a directory's, means that one was meant.
// What is absent is fs.ErrNotExist itself, and found without errors.Is, which
// takes a hundredth of a check here.
func absent(name string, link bool, err error) error {
	cause := err
	if p, ok := err.(*fs.PathError); ok {
		cause = p.Err
	}
	missing := os.IsNotExist(cause)
	switch {
	case missing && link:
		return errors.New("it is a symbolic link to nothing")
	case missing:
		return none(filepath.Dir(name))
	case cause == syscall.ENOTDIR && !link:
		return fs.ErrNotExist
	}
	return err
}

// none is fs.ErrNotExist for what is not in dir, unless dir or one above is a
// link that leads nowhere.
func none(dir string) error {
	for {
		info, err := os.Lstat(dir)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			if _, err = os.Stat(dir); os.IsNotExist(err) {
				return fmt.Errorf("%s is a symbolic link to nothing", dir)
			}
		}
		above := filepath.Dir(dir)
		switch {
		case err == nil, above == dir:
			return fs.ErrNotExist
		case !os.IsNotExist(err):
			return err
		}
		dir = above
	}
}

// Dirs are the directories that policy comes from.
type Dirs struct {
	Agent  string // the agents' own: $PI_CODING_AGENT_DIR, else ~/.pi/agent
	Config string // Nod's: $XDG_CONFIG_HOME/nod, else ~/.config/nod
	State  string // Nod's: $XDG_STATE_HOME/nod, else ~/.local/state/nod
}

// DirsFrom works them out from an environment. On Windows the defaults are
// below %AppData% and %LocalAppData%, on macOS below ~/Library.
func DirsFrom(getenv func(string) string, home, goos string) Dirs {
	d := Dirs{Agent: getenv("PI_CODING_AGENT_DIR")}
	if d.Agent == "" {
		d.Agent = filepath.Join(home, ".pi", "agent")
	}
	base := func(name string, unix ...string) string {
		if v := getenv(name); filepath.IsAbs(v) {
			return filepath.Join(v, "nod")
		}
		switch goos {
		case "windows":
			key := "AppData"
			if name == "XDG_STATE_HOME" {
				key = "LocalAppData"
			}
			if v := getenv(key); v != "" {
				return filepath.Join(v, "nod")
			}
		case "darwin":
			return filepath.Join(home, "Library", "Application Support", "nod")
		}
		return filepath.Join(append(append([]string{home}, unix...), "nod")...)
	}
	d.Config = base("XDG_CONFIG_HOME", ".config")
	d.State = base("XDG_STATE_HOME", ".local", "state")
	return d
}
