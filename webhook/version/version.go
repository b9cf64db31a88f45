// Package version is warmpool's own version, as its commands and reports say it.
package version

import (
	"runtime/debug"
	"sync"
)

// number is set by make build and the Dockerfile (-ldflags -X); go build and go install leave it empty.
var number string

// unknown is a semantic version, as all others are.
const unknown = "v0.0.0+unknown"

// Get is the version that was set, else what Go knows of the build: the version of the module, or one made of the commit.
var Get = sync.OnceValue(func() string {
	info, _ := debug.ReadBuildInfo()
	return of(number, info)
})

// Commit is the commit that it was built from, or "" where Go did not record it (-buildvcs=false, or no git repository).
var Commit = sync.OnceValue(func() string {
	info, _ := debug.ReadBuildInfo()
	return commitOf(info)
})

func of(number string, info *debug.BuildInfo) string {
	switch {
	case number != "":
		return number
	case info == nil || info.Main.Version == "" || info.Main.Version == "(devel)":
		return unknown
	}
	return info.Main.Version
}

func commitOf(info *debug.BuildInfo) string {
	if info == nil {
		return ""
	}
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	commit := settings["vcs.revision"]
	if commit != "" && settings["vcs.modified"] == "true" {
		commit += "-dirty"
	}
	return commit
}
