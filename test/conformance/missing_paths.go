package conformance

import (
	"maps"
	"slices"
	"strings"
)

// missingPath is the difference of a published path that our contract lacks.
const missingPath = "is missing"

// MissingPaths returns the published paths that our contract and the table of missing paths lack, and the rows of that
// table that name no such path. A row with * names a group of which our contract has no path.
func (r *Checker) MissingPaths() (unlisted, stale []string) {
	used := map[Difference]bool{}
	for _, path := range slices.Sorted(maps.Keys(r.published.Paths.Map())) {
		if r.ours.Paths.Value(path) != nil {
			continue
		}
		i := slices.IndexFunc(r.differences, func(d Difference) bool {
			group, whole := strings.CutSuffix(d.Path, "*")
			return d.What == missingPath &&
				(d.Path == path || whole && strings.HasPrefix(path, group) && !r.has(group))
		})
		if i < 0 {
			unlisted = append(unlisted, path)
			continue
		}
		used[r.differences[i]] = true
	}
	for _, d := range r.differences {
		if d.What == missingPath && !used[d] {
			stale = append(stale, d.Path)
		}
	}
	return unlisted, stale
}

// has reports whether our contract has a path of a group.
func (r *Checker) has(group string) bool {
	for path := range r.ours.Paths.Map() {
		if strings.HasPrefix(path, group) {
			return true
		}
	}
	return false
}
