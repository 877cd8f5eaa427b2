// Command managerd runs one manager of a Holdfast cluster.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast/internal/errkind"
	"holdfast/manager"
	"holdfast/manager/state/raft"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Exit codes.
const (
	exitDone  = 0
	exitError = 1
	exitUsage = 2
)

// options are the flags.
type options struct {
	stateDir, control, remote, advertise string
	join, token, hostname                string
	readyTimeout                         time.Duration
	logLevel, logFormat                  string
	releaseDriver                        string
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	started := false
	cmd := &cobra.Command{
		Use:           "managerd --state-dir DIR --listen-control-api unix://PATH --listen-remote-api HOST:PORT",
		Short:         "Run one manager of a Holdfast cluster",
		Long:          help,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			cfg, err := o.config(stdout, stderr)
			if err != nil {
				return err
			}
			kept, err := parseReleases(o.releaseDriver)
			if err != nil {
				return err
			}
			started = true
			return serve(cmd.Context(), cfg, kept)
		},
	}
	o.flags(cmd.Flags())
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(stderr, "error: %s\n", strings.ReplaceAll(err.Error(), "\n", "; ")) //nolint:errcheck // nobody is left to tell
	if hint := errkind.Hint(err); hint != "" {
		fmt.Fprintf(stderr, "hint: %s\n", hint) //nolint:errcheck // nobody is left to tell
	}
	if !started {
		return exitUsage
	}
	return exitError
}

const help = `Run one manager of a Holdfast cluster.

The first manager begins a new cluster; the others join it with --join-addr and --join-token
(ctl cluster token manager -q). A manager that has a state folder goes on where it stopped, and
needs neither. Every flag may also be given as MANAGERD_ and its name in capitals, as in
MANAGERD_STATE_DIR.

Releases of stacks are kept in the cluster itself, unless --release-driver names another place, the
same one for all managers. Only a cluster of one manager can keep them in memory, where they end
with the process, or in a file of SQLite. A DSN may have a password: give it by
MANAGERD_RELEASE_DRIVER rather than as a flag, or in PGPASSWORD or a password file.

On stdout it prints one line once it serves and has caught up. SIGTERM and SIGINT hand
leadership over, let the calls under way finish, and stop it.`

func (o *options) flags(f *pflag.FlagSet) {
	f.StringVar(&o.stateDir, "state-dir", "", "folder that holds the manager's state; nobody else may use it")
	f.StringVar(&o.control, "listen-control-api", "unix:///var/run/holdfast/control.sock", "unix socket for operators on this machine")
	f.StringVar(&o.remote, "listen-remote-api", "127.0.0.1:4242", "HOST:PORT for the other managers; loopback only, until it is protected")
	f.StringVar(&o.advertise, "advertise-remote-api", "", "HOST:PORT at which the other managers reach this one, if another")
	f.StringVar(&o.join, "join-addr", "", "HOST:PORT of a manager whose cluster to join")
	f.StringVar(&o.token, "join-token", "", "token of that cluster for managers")
	f.StringVar(&o.hostname, "hostname", "", "name of this machine for people (default: the machine's own)")
	f.DurationVar(&o.readyTimeout, "ready-timeout", time.Minute, "how long catching up may take before the manager gives up")
	f.StringVar(&o.releaseDriver, "release-driver", driverObject,
		"where the releases of stacks are kept: object (the cluster), sql=DSN (PostgreSQL, or sqlite:FILE), or memory")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", "text", "text or json")
}

// fromEnvironment sets the flags that were not given from MANAGERD_ variables.
func fromEnvironment(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		name := "MANAGERD_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := os.LookupEnv(name)
		if !ok || f.Changed || err != nil {
			return
		}
		if setErr := flags.Set(f.Name, value); setErr != nil {
			err = errkind.Field(name, "%v", setErr)
		}
	})
	return err
}

func (o *options) config(stdout, stderr io.Writer) (manager.Config, error) {
	path, ok := strings.CutPrefix(o.control, "unix://")
	if !ok || path == "" {
		return manager.Config{}, errkind.Field("--listen-control-api", "%q is not unix://PATH", o.control)
	}
	if o.stateDir == "" {
		return manager.Config{}, errkind.Field("--state-dir", "is needed")
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return manager.Config{}, errkind.Field("--log-level", "%q is none of debug, info, warn, error", o.logLevel)
	}
	var handler slog.Handler
	switch o.logFormat {
	case "text":
		handler = slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level})
	case "json":
		handler = slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level})
	default:
		return manager.Config{}, errkind.Field("--log-format", "%q is neither text nor json", o.logFormat)
	}
	return manager.Config{
		StateDir: o.stateDir, Control: path, Remote: o.remote, Advertise: o.advertise,
		Join: o.join, Token: o.token, Hostname: o.hostname, ReadyTimeout: o.readyTimeout,
		Logger: slog.New(handler),
		Ready: func(r manager.Ready) {
			fmt.Fprintln(stdout, r) //nolint:errcheck // a reader that is gone must not stop the manager
		},
	}, nil
}

func serve(ctx context.Context, cfg manager.Config, kept releases) (err error) {
	ownLogs(cfg.Logger)
	defer func() { err = errors.Join(err, kept.close()) }()
	if err := kept.reach(ctx, cfg.Logger); err != nil {
		return err
	}
	cfg.Releases = kept.Releases
	loaded, err := tuneMemory()
	if err != nil {
		return err
	}
	m, err := manager.Open(ctx, cfg)
	if err != nil {
		return err
	}
	loaded()
	if err := m.Run(ctx); err != nil {
		if errors.Is(err, raft.ErrRemoved) {
			return (&errkind.Error{Kind: errkind.Refused, Msg: err.Error(), Err: err}).
				WithHint("empty its state folder to let the machine join again")
		}
		return err
	}
	return nil
}
