// Package watch holds tests that watch managers, which run as processes, while they are killed
// and their history is compacted: what watchers are given is held against what lists of each
// revision show.
package watch
