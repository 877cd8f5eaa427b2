package manager

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
)

// Config is what a manager is made of. Advertise, Join and Token may be empty.
type Config struct {
	StateDir  string
	Control   string // path of the unix socket for operators
	Remote    string // HOST:PORT for managers and remote clients
	Advertise string // HOST:PORT at which the others reach Remote; Remote if empty
	Join      string // HOST:PORT of a member of the cluster to join; empty: begin a new one
	Token     string // join token
	Hostname  string
	Logger    *slog.Logger

	// Releases is where the releases of stacks are kept.
	Releases Releases

	// MaxPending bounds the writes that wait for their outcome; 0 means the store's default.
	MaxPending   int
	ReadyTimeout time.Duration
	// Ready is called once, when both listeners serve and this manager has applied what was
	// committed when it started.
	Ready func(Ready)

	clock func() time.Time // nil: time.Now
}

// Releases is where the releases of stacks are kept. The zero value is the cluster itself.
type Releases struct {
	// Driver is another place. It stays the caller's to close, after Run.
	Driver driver.Driver
	// Alone tells that no other manager can reach it, so that there must be only one.
	Alone bool
}

// alone is the error of a place that other managers cannot reach.
func (r Releases) alone(what string) error {
	return (&errkind.Error{
		Kind: errkind.Refused, Field: "--release-driver",
		Msg: fmt.Sprintf("%s is for a cluster of one manager: no other can reach it; %s", r.Driver.Name(), what),
	}).WithHint("use object, or a PostgreSQL that all managers reach")
}

// Ready tells where a manager serves.
type Ready struct {
	NodeID  string
	Control string
	Remote  string
}

// String is the line that managerd prints.
func (r Ready) String() string {
	return fmt.Sprintf("managerd: ready node=%s control=unix://%s remote=%s", r.NodeID, r.Control, r.Remote)
}

func (c *Config) check() error {
	for _, f := range []struct{ flag, value string }{
		{"--state-dir", c.StateDir},
		{"--listen-control-api", c.Control},
		{"--listen-remote-api", c.Remote},
	} {
		if f.value == "" {
			return errkind.Field(f.flag, "is needed")
		}
	}
	if err := checkLoopback("--listen-remote-api", c.Remote); err != nil {
		return err
	}
	if c.Advertise != "" {
		if err := checkLoopback("--advertise-remote-api", c.Advertise); err != nil {
			return err
		}
	}
	if c.Join != "" && c.Token == "" {
		return errkind.Field("--join-token", "is needed with --join-addr").
			WithHint("get it on a manager with: ctl cluster token manager -q")
	}
	if c.Join != "" && c.Releases.Alone {
		return c.Releases.alone("with --join-addr there are more")
	}
	if c.Hostname == "" {
		name, err := os.Hostname()
		if err != nil {
			return errkind.Field("--hostname", "is needed: %v", err)
		}
		c.Hostname = name
	}
	if c.clock == nil {
		c.clock = time.Now
	}
	return nil
}

// checkLoopback refuses an address that another machine could reach: what is served there is
// not protected yet.
func checkLoopback(flag, addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return errkind.Field(flag, "%q is not HOST:PORT: %v", addr, err)
	}
	ips := []net.IP{net.ParseIP(host)}
	if ips[0] == nil {
		if ips, err = net.LookupIP(host); err != nil {
			return errkind.Field(flag, "%v", err)
		}
	}
	for _, ip := range ips {
		if !ip.IsLoopback() {
			return errkind.Field(flag, "%s is not a loopback address; managers do not protect what they serve yet", addr).
				WithHint("listen in 127.0.0.0/8 or on [::1]")
		}
	}
	return nil
}
