package sim

import (
	"errors"
	"io"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// link is a direction between two members.
type link struct{ from, to uint64 }

// machineOf finds a member's machine, or nil.
func (c *cluster) machineOf(id uint64) *machine {
	for _, m := range c.machines {
		if m.id == id && !m.gone {
			return m
		}
	}
	return nil
}

// delay is how long a message is on its way.
func (c *cluster) delay() time.Duration {
	if !c.calm && c.chance(c.profile.slowMessage) {
		return c.upTo(c.profile.slowNet)
	}
	return c.upTo(c.profile.net)
}

// send puts a raft message on the network: it may get lost, come late, or twice.
func (c *cluster) send(from *process, m *pb.Message) {
	if !c.calm && c.chance(c.profile.lose) || c.drops != nil && c.drops(from.id, m) {
		c.lost(from, m)
		return
	}
	if !beats(m) {
		c.tell("n%d→n%d %v term %d at %d/%d commit %d entries %d reject %v", from.id, m.GetTo(), m.GetType(), m.GetTerm(),
			m.GetIndex(), m.GetLogTerm(), m.GetCommit(), len(m.GetEntries()), m.GetReject())
	}
	times := 1
	if !c.calm && m.GetType() != pb.MsgSnap && c.chance(c.profile.twice) {
		times = 2
	}
	for range times {
		c.after(c.delay(), func() { c.arrive(from, m) })
	}
}

func beats(m *pb.Message) bool {
	return m.GetType() == pb.MsgHeartbeat || m.GetType() == pb.MsgHeartbeatResp
}

// arrive gives a message to whom it is for.
func (c *cluster) arrive(from *process, m *pb.Message) {
	to := c.machineOf(m.GetTo())
	if to == nil || to.proc == nil || c.cut[link{from.id, m.GetTo()}] {
		c.lost(from, m)
		return
	}
	p := to.proc
	for _, gone := range p.store.Applied().Removed { // as the transport does
		if gone == from.id {
			if !from.dead {
				from.node.Removed()
				from.poke()
			}
			return
		}
	}
	msg, ok := proto.Clone(m).(*pb.Message)
	if !ok {
		c.fail("messages can be copied", "%v", m.GetType())
	}
	if m.GetType() == pb.MsgSnap {
		p.do(0, func() { c.snapshot(from, p, msg) })
		return
	}
	p.do(0, func() {
		p.node.Receive([]*pb.Message{msg})
		p.poke()
	})
}

// lost is what the transport does about a message that cannot be sent.
func (c *cluster) lost(from *process, m *pb.Message) {
	from.do(c.upTo(10*time.Millisecond), func() {
		if m.GetType() == pb.MsgSnap {
			from.node.ReportSnapshot(m.GetTo(), false)
		} else if c.chance(2) {
			from.node.ReportUnreachable(m.GetTo())
		}
		from.poke()
	})
}

// snapshot sends the file of a snapshot, which may break off.
func (c *cluster) snapshot(from, to *process, m *pb.Message) {
	if from.dead {
		return
	}
	file, size, err := from.node.SnapshotFile(m)
	if err == nil {
		var r io.Reader = file
		if !c.calm && c.chance(c.profile.snapBreaks) {
			r = io.MultiReader(io.LimitReader(file, c.rng.Int64N(size+1)), broken{})
		}
		err = errors.Join(to.node.ReceiveSnapshot(m, r), file.Close())
		if to.disk.Crashed() {
			to.stopped(err)
		}
	}
	c.tell("n%d→n%d snapshot %d: %v", from.id, to.id, m.GetSnapshot().GetMetadata().GetIndex(), err)
	if !to.dead {
		if err == nil && !c.calm && c.chance(c.profile.crashAtSnapshot) {
			to.disk.CrashAt(c.between(1, 7))
		}
		to.poke()
	}
	from.do(c.upTo(20*time.Millisecond), func() {
		from.node.ReportSnapshot(m.GetTo(), err == nil)
		from.poke()
	})
}

// broken is the rest of a stream that broke off.
type broken struct{}

// Read implements io.Reader.
func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
