package shell

import "testing"

// BenchmarkRead is the reading alone: parsing, units and operands.
func BenchmarkRead(b *testing.B) {
	var rd Reader
	for _, text := range []string{"git status", "cd src && grep -rn foo . | head -20 > out.txt", "sudo bash -c 'rm -rf /tmp/x && echo done'"} {
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rd.Read(text, Env{Home: "/home/u", Cwd: "/proj"})
			}
		})
	}
}
