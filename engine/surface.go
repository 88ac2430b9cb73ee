package engine

// The surfaces of the path family that have two directions. The bare names are
// sugar for both (record 0013).
const (
	SurfacePath                   = "path"
	SurfacePathRead               = "path_read"
	SurfacePathWrite              = "path_write"
	SurfaceExternalDirectory      = "external_directory"
	SurfaceExternalDirectoryRead  = "external_directory_read"
	SurfaceExternalDirectoryWrite = "external_directory_write"
)

// Other surfaces that the engine knows by name.
const (
	SurfaceBash  = "bash"
	SurfaceMCP   = "mcp"
	SurfaceSkill = "skill"
)

// IsPathSurface reports whether values on surface are paths, so that its
// patterns are normalised as access paths are.
func IsPathSurface(surface string) bool {
	switch surface {
	case "read", "write", "edit", "find", "grep", "ls":
		return true
	}
	return IsBoundarySurface(surface)
}

// IsBoundarySurface reports whether surface is of the path or
// external_directory family, where a link's allow does not count.
func IsBoundarySurface(surface string) bool {
	switch surface {
	case SurfacePath, SurfacePathRead, SurfacePathWrite,
		SurfaceExternalDirectory, SurfaceExternalDirectoryRead, SurfaceExternalDirectoryWrite:
		return true
	}
	return false
}

// PathSurfaces lists the surfaces whose values are paths.
func PathSurfaces() []string {
	return []string{
		"read", "write", "edit", "find", "grep", "ls",
		SurfacePath, SurfacePathRead, SurfacePathWrite,
		SurfaceExternalDirectory, SurfaceExternalDirectoryRead, SurfaceExternalDirectoryWrite,
	}
}

// directions returns the two directed names that a bare name stands for.
func directions(surface string) (read, write string, ok bool) {
	switch surface {
	case SurfacePath:
		return SurfacePathRead, SurfacePathWrite, true
	case SurfaceExternalDirectory:
		return SurfaceExternalDirectoryRead, SurfaceExternalDirectoryWrite, true
	}
	return "", "", false
}

// bareName returns the bare name of a directed surface, or the empty string.
func bareName(surface string) string {
	switch surface {
	case SurfacePathRead, SurfacePathWrite:
		return SurfacePath
	case SurfaceExternalDirectoryRead, SurfaceExternalDirectoryWrite:
		return SurfaceExternalDirectory
	}
	return ""
}
