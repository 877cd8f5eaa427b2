package raft

import (
	pb "go.etcd.io/raft/v3/raftpb"
)

// takeAnswers takes the responses off a log write, but what tells raft itself that it is done:
// that one has to be true, or raft looks for entries where there are none yet. It is what a
// planted fault does, and does not run in the product.
func takeAnswers(m *pb.Message) (answers []*pb.Message) {
	var done []*pb.Message
	for _, r := range m.GetResponses() {
		if r.GetType() == pb.MsgStorageAppendResp {
			done = append(done, r)
		} else {
			answers = append(answers, r)
		}
	}
	m.Responses = done
	return answers
}
