// Ctl is the command line of a Holdfast cluster. It talks to the managers through their API
// and keeps nothing of its own.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/cli"
)

func main() {
	os.Exit(run(os.Args[1:], cli.System(), os.Environ(), time.Now))
}

// run runs one command and gives its exit code. It is the one place that chooses it.
func run(args []string, streams cli.Streams, environ []string, clock func() time.Time) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot(&command.Env{Streams: streams, Environ: environ, Clock: clock})
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	cli.Report(streams.Err, err)
	return cli.ExitCode(err)
}
