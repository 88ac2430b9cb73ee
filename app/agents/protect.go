package agents

import (
	"path/filepath"
	"slices"
	"time"
)

// HookFiles returns, for the user and for a project, the settings files of the
// agents that call Nod, and every file that it looked at: when one of those
// changes, so may the first. An agent that is hooked in either place has all
// its settings named, since one of them can switch off what another says.
func (env Env) HookFiles(project string) (called, looked []string) {
	for _, a := range All() {
		i, ok := a.(installer)
		if !ok {
			continue
		}
		var files []string
		hooked := false
		for _, dir := range []string{"", project} {
			if dir == "" && len(files) > 0 {
				continue // there is no project
			}
			s := i.setup(site{Home: env.Home, Project: dir, Config: env.Dirs.Config, Getenv: env.Getenv}, Gated, func(string, time.Duration) []string { return []string{"nod"} })
			all := append([]string{s.file}, beside(a, s.file)...)
			for _, f := range all {
				if slices.Contains(files, f) {
					continue
				}
				files = append(files, f)
				text, _, err := read(f)
				if err != nil {
					continue
				}
				commands, err := written(a.Name(), f, text, s.whole != nil)
				hooked = hooked || err == nil && len(commands) > 0
			}
		}
		looked = append(looked, files...)
		if hooked {
			called = append(called, files...)
		}
	}
	return called, looked
}

// beside are further settings of an agent that decide about its hooks.
func beside(a Adapter, file string) []string {
	dir := filepath.Dir(file)
	switch a.(type) {
	case Claude:
		return []string{filepath.Join(dir, "settings.json"), filepath.Join(dir, "settings.local.json")}
	case Codex:
		return []string{filepath.Join(dir, "config.toml")}
	case Copilot:
		return []string{filepath.Join(filepath.Dir(dir), "config.json")}
	}
	return nil
}
