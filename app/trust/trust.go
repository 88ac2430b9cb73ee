// Package trust remembers which projects may bring rules of their own.
//
// Trust is per directory, by its canonical path, and is given by a person on
// the command line only. It is kept in one file of Nod's state directory.
package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Store is the list of trusted projects on disk. Its methods read the file
// anew, so that a change by another process counts at once.
type Store struct {
	path string
}

// Project is one trusted directory.
type Project struct {
	Path  string    `json:"path"` // canonical
	Since time.Time `json:"since"`
}

type file struct {
	Projects []Project `json:"projects"`
}

// Open returns the store in Nod's state directory. Nothing is created until
// something is trusted.
func Open(stateDir string) *Store {
	return &Store{path: filepath.Join(stateDir, "trusted.json")}
}

// Path is the store's file.
func (s *Store) Path() string { return s.path }

// Trusted reports whether dir is trusted. If that cannot be found out the
// answer is no, with the reason.
func (s *Store) Trusted(dir string) (bool, error) {
	f, err := s.read()
	if err != nil || len(f.Projects) == 0 {
		return false, err
	}
	path, err := canonical(dir)
	if err != nil {
		return false, err
	}
	return f.index(path) >= 0, nil
}

// Add trusts dir and returns its canonical path. It reports false if dir was
// trusted already.
func (s *Store) Add(dir string, now time.Time) (string, bool, error) {
	path, err := canonical(dir)
	if err != nil {
		return "", false, fmt.Errorf("trusting %s: %w", dir, err)
	}
	if info, err := os.Stat(path); err != nil {
		return "", false, fmt.Errorf("trusting %s: %w", dir, err)
	} else if !info.IsDir() {
		return "", false, fmt.Errorf("trusting %s: not a directory", dir)
	}
	f, err := s.read()
	if err != nil {
		return "", false, err
	}
	if f.index(path) >= 0 {
		return path, false, nil
	}
	f.Projects = append(f.Projects, Project{Path: path, Since: now.UTC().Truncate(time.Second)})
	return path, true, s.write(f)
}

// Remove takes trust back and returns the path it was kept under. It reports
// false if dir was not trusted. A directory that is gone can be named as it was
// kept.
func (s *Store) Remove(dir string) (string, bool, error) {
	path, err := canonical(dir)
	if err != nil {
		if path, err = filepath.Abs(dir); err != nil {
			return "", false, fmt.Errorf("untrusting %s: %w", dir, err)
		}
	}
	f, err := s.read()
	if err != nil {
		return "", false, err
	}
	i := f.index(path)
	if i < 0 {
		return path, false, nil
	}
	f.Projects = slices.Delete(f.Projects, i, i+1)
	return path, true, s.write(f)
}

// List returns the trusted projects in the order they were trusted.
func (s *Store) List() ([]Project, error) {
	f, err := s.read()
	return f.Projects, err
}

func (f *file) index(path string) int {
	return slices.IndexFunc(f.Projects, func(p Project) bool { return p.Path == path })
}

func canonical(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

func (s *Store) read() (file, error) {
	var f file
	data, err := os.ReadFile(s.path)
	if os.IsNotExist(err) { // errors.Is takes a hundredth of a check here
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("reading the trusted projects: %w", err)
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return file{}, fmt.Errorf("reading the trusted projects: %s: %w; remove the file to start anew", s.path, err)
	}
	return f, nil
}

// write replaces the file whole, so that a reader never sees half of it.
func (s *Store) write(f file) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing the trusted projects: %w", err)
		}
	}()
	dir := filepath.Dir(s.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, ".trusted-*") // made 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if _, err := tmp.Write(append(data, '\n')); err != nil {
		tmp.Close()
		return err
	}
	if err := errors.Join(tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), s.path)
}
