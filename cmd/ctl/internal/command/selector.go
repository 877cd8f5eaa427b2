package command

import (
	"github.com/spf13/pflag"

	"holdfast/internal/cli"
	"holdfast/internal/errkind"
	"holdfast/internal/selector"
)

// Selector is the value of --selector.
type Selector struct{ text string }

// AddFlag adds --selector.
func (s *Selector) AddFlag(fs *pflag.FlagSet) {
	fs.StringVarP(&s.text, "selector", "l", "", "only what has labels and fields such as `TEXT`:\n"+
		`'tier=front, env in (test,prod), !old, .name!=web'`)
}

// Text gives the selector as managers take it. That its form is right is found out here; which
// fields a kind has, managers know.
func (s *Selector) Text() (string, error) {
	if _, err := selector.Parse(s.text); err != nil {
		return "", &cli.UsageError{Msg: "--" + err.Error(), Hint: errkind.Hint(err)}
	}
	return s.text, nil
}
