// Package command holds what ctl's commands are built from: their environment, the flags that
// all of them have, and the verbs that are alike for all kinds of object. An Env is made once,
// in main, and passed to each constructor; only its flags change, when they are parsed.
package command

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	gogo "github.com/gogo/protobuf/proto"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast/client"
	"holdfast/internal/apijson"
	"holdfast/internal/cli"
	"holdfast/internal/descriptors"
	"holdfast/internal/errkind"
)

const (
	// DefaultSocket is where ctl looks for a manager when it is told nothing else.
	DefaultSocket = "unix:///var/run/holdfast/control.sock"

	socketVariable = "CTL_SOCKET"
	defaultTimeout = 30 * time.Second
)

// Env is what a command finds around it.
type Env struct {
	Streams cli.Streams
	Environ []string // KEY=VALUE
	Clock   func() time.Time

	sockets string
	addrs   string
	timeout time.Duration
	limited func() bool // whether --timeout was given
	message string
	format  cli.Format
	quiet   bool
}

// AddFlags adds the flags that all commands have.
func (e *Env) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&e.sockets, "socket", "", "`unix://PATH[,...]` of managers (default $"+socketVariable+", or "+DefaultSocket+")")
	fs.StringVar(&e.addrs, "addr", "", "`HOST:PORT[,...]` of managers, instead of a socket; loopback only, as yet")
	fs.DurationVar(&e.timeout, "timeout", defaultTimeout, "how long to go on trying; 0 for no limit")
	e.limited = func() bool { return fs.Changed("timeout") }
	fs.StringVarP(&e.message, "message", "m", "", "why: `TEXT` that is kept in the history of what the command changes")
	fs.VarP(&e.format, "output", "o", "how to print objects")
	fs.BoolVarP(&e.quiet, "quiet", "q", false, "print IDs only")
}

// Lookup returns a variable of the environment.
func (e *Env) Lookup(name string) (string, bool) {
	for i := len(e.Environ) - 1; i >= 0; i-- { // the last one wins
		if key, value, ok := strings.Cut(e.Environ[i], "="); ok && key == name {
			return value, true
		}
	}
	return "", false
}

// Quiet tells whether -q was given.
func (e *Env) Quiet() bool { return e.quiet }

// Printer returns the printer that the flags ask for.
func (e *Env) Printer() cli.Printer {
	p := cli.Printer{Out: e.Streams.Out, Format: e.format, Encode: encoder()}
	if e.quiet {
		p.Format = cli.ID
	}
	return p
}

// Talks tells whether people read the output, and not only names or IDs are asked for.
func (e *Env) Talks() bool { return !e.quiet && e.format != cli.Name && e.format != cli.JSON }

// Printf prints a line of data.
func (e *Env) Printf(format string, args ...any) error {
	_, err := fmt.Fprintf(e.Streams.Out, format+"\n", args...)
	return err
}

// Notef says something to the person in front of the terminal.
func (e *Env) Notef(format string, args ...any) {
	// What cannot be written to stderr can be told to nobody.
	fmt.Fprintf(e.Streams.Err, "%s\n", cli.Clean(fmt.Sprintf(format, args...))) //nolint:errcheck // see above
}

// Func is what a command does.
type Func func(ctx context.Context, c *client.Client, args []string) error

// Run makes a command of do: with a client of the cluster, and no longer than --timeout.
func (e *Env) Run(do Func) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error { return e.run(cmd.Context(), e.timeout, do, args) }
}

// RunLong makes a command of do that goes on until it is interrupted. --timeout ends it only if
// it was given.
func (e *Env) RunLong(do Func) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		timeout := e.timeout
		if !e.limited() {
			timeout = 0
		}
		return e.run(cmd.Context(), timeout, do, args)
	}
}

// RunDiff makes a command of do that compares: its exit code tells what came of that.
func (e *Env) RunDiff(do Func) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return cli.Compared(e.run(cmd.Context(), e.timeout, do, args))
	}
}

func (e *Env) run(ctx context.Context, timeout time.Duration, do Func, args []string) (err error) {
	if err := e.check(); err != nil {
		return err
	}
	endpoints, err := e.endpoints()
	if err != nil {
		return err
	}
	c, err := client.New(client.Options{Endpoints: endpoints})
	if err != nil {
		return &cli.UsageError{Msg: err.Error(), Hint: errkind.Hint(err)}
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	if e.message != "" {
		ctx = client.WithMessage(ctx, e.message)
	}
	err = do(ctx, c, args)
	if closeErr := c.Close(); err == nil {
		err = closeErr
	}
	return err
}

// RunAlone makes a command of do that needs no cluster.
func (e *Env) RunAlone(do func(args []string) error) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error {
		if err := e.check(); err != nil {
			return err
		}
		return do(args)
	}
}

// check tells what is wrong with the flags that all commands have.
func (e *Env) check() error {
	switch {
	case e.quiet && e.format != "":
		return cli.Usagef("-q and -o exclude each other")
	case e.sockets != "" && e.addrs != "":
		return cli.Usagef("--socket and --addr exclude each other")
	case e.timeout < 0:
		return cli.Usagef("--timeout %v is negative", e.timeout)
	}
	if !utf8.ValidString(e.message) {
		return cli.Usagef("--message: %q is not UTF-8", e.message)
	}
	return nil
}

// endpoints returns the managers that the flags or the environment name.
func (e *Env) endpoints() ([]string, error) {
	if e.addrs != "" {
		all := strings.Split(e.addrs, ",")
		for _, a := range all {
			if strings.Contains(a, "://") {
				return nil, cli.Usagef("--addr %s: want HOST:PORT", a)
			}
		}
		return all, nil
	}
	sockets, from := e.sockets, "--socket"
	if sockets == "" {
		sockets, from = DefaultSocket, "default"
		if v, ok := e.Lookup(socketVariable); ok && v != "" {
			sockets, from = v, socketVariable
		}
	}
	all := strings.Split(sockets, ",")
	for _, s := range all {
		if !strings.HasPrefix(s, "unix://") {
			return nil, cli.Usagef("%s %s: want unix://PATH", from, s)
		}
	}
	return all, nil
}

// encoder returns a function that gives the JSON of a message, or of a value of our own.
func encoder() func(any) ([]byte, error) {
	converter := sync.OnceValues(func() (apijson.Converter, error) {
		files, err := descriptors.New()
		return apijson.New(files), err
	})
	return func(v any) ([]byte, error) {
		message, ok := v.(gogo.Message)
		if !ok {
			return json.Marshal(v)
		}
		c, err := converter()
		if err != nil {
			return nil, err
		}
		return c.Marshal(message)
	}
}
