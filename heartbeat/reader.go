package heartbeat

import (
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Reader reads heartbeats. The zero value does not work: a clock is needed.
type Reader struct {
	Clock Clock
	Files Files // nil means Disk
}

// Read tells how the session's heartbeat in dir reads. The record is zero
// when the state is Absent. A file that cannot be read is Absent.
func (r Reader) Read(dir, sessionID string) (State, Record) {
	id, err := CheckSession(sessionID)
	if err != nil {
		return Absent, Record{}
	}
	data, err := r.files().Read(filepath.Join(dir, Encode(id)+".json"))
	if err != nil {
		return Absent, Record{}
	}
	rec, err := ParseRecord(data)
	if err != nil || rec.SessionID != id {
		return Absent, Record{}
	}
	return r.state(rec), rec
}

// Entry is one record of a serving directory.
type Entry struct {
	File   string // its path
	State  State
	Record Record // zero when State is Absent
}

// List reads every record in dir, by file name. A directory that does not
// exist holds none; only a directory that cannot be listed is an error.
func (r Reader) List(dir string) ([]Entry, error) {
	names, err := r.files().Names(dir)
	if err != nil {
		if missing(err) {
			return nil, nil
		}
		return nil, err
	}
	slices.Sort(names)
	var list []Entry
	for _, name := range names {
		enc, ok := strings.CutSuffix(name, ".json")
		if !ok {
			continue
		}
		e := Entry{File: filepath.Join(dir, name), State: Absent}
		if id, err := Decode(enc); err == nil {
			e.State, e.Record = r.Read(dir, id)
		}
		list = append(list, e)
	}
	return list, nil
}

func (r Reader) files() Files {
	if r.Files == nil {
		return Disk{}
	}
	return r.Files
}

func (r Reader) state(rec Record) State {
	boot := bootID()
	if gone(rec, boot) {
		return DeadPID
	}
	if r.age(rec, boot) >= StaleAge {
		return Stale
	}
	return Alive
}

// gone reports whether the record's process is gone for certain. A record of
// another boot, which on a shared home may be another machine, proves nothing:
// its process id means nothing here.
func gone(rec Record, boot string) bool {
	if rec.BootID != "" && boot != "" && rec.BootID != boot {
		return false
	}
	there, start := process(rec.PID)
	return !there || rec.ProcessStart != "" && start != "" && rec.ProcessStart != start
}

// age is how long ago rec was refreshed. Within one boot the boot clock tells,
// whatever happened to the wall clock since. By the wall clock, a time to come
// is as far from now as one gone by.
func (r Reader) age(rec Record, boot string) time.Duration {
	if now := r.Clock.boot(); rec.BootID != "" && rec.BootID == boot && rec.Boot > 0 && now > 0 {
		if age := now - rec.Boot; age > -StaleAge {
			return age
		}
	}
	return r.Clock.Now().Sub(rec.UpdatedAt).Abs()
}
