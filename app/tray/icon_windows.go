//go:build !headless

package tray

import "encoding/binary"

// iconFile puts a PNG into the container that Windows reads icons from: a
// directory of one picture whose size it takes from the PNG itself.
func iconFile(png []byte) []byte {
	const header = 6 + 16
	b := []byte{0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 32, 0}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(png)))
	b = binary.LittleEndian.AppendUint32(b, header)
	return append(b, png...)
}
