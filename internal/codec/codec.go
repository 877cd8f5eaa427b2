// Package codec is the gRPC codec of our messages. Those are made by gogo/protobuf, whose
// generated code the default codec does not know: it would go through reflection. Messages
// that are not gogo's, such as those of the health and reflection services, go to the
// default codec.
//
// The codec is named "proto", like the default one, so nothing of it shows on the wire. It is
// not registered for the whole process; a server installs it with grpc.ForceServerCodecV2 and
// a client with grpc.ForceCodecV2, as a default call option.
//
// A message that is sent must not change until the call that sends it returns. What is
// received has no memory in common with the connection's buffers.
package codec

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto" // registers the default codec, too
	"google.golang.org/grpc/mem"
)

// Raw is an encoded message that is passed on as it came: a proxy receives into a *Raw and
// sends the Raw. Its bytes must not change once it was sent.
type Raw []byte

// marshaler is what gogo generates to encode a message. MarshalToSizedBuffer fills a buffer
// of exactly Size bytes.
type marshaler interface {
	Size() int
	MarshalToSizedBuffer(buf []byte) (int, error)
}

// unmarshaler is what gogo generates to decode a message. It copies what it keeps of data.
type unmarshaler interface {
	Reset()
	Unmarshal(data []byte) error
}

type codec struct {
	fallback encoding.CodecV2
	pool     mem.BufferPool
}

// New returns a codec whose fallback is the codec that is now registered as "proto". It is
// safe for use by many goroutines.
func New() encoding.CodecV2 {
	return codec{
		fallback: encoding.GetCodecV2(proto.Name),
		pool:     mem.DefaultBufferPool(),
	}
}

// Name implements encoding.CodecV2.
func (c codec) Name() string { return proto.Name }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case Raw:
		return mem.BufferSlice{mem.SliceBuffer(v)}, nil
	case *Raw:
		return mem.BufferSlice{mem.SliceBuffer(*v)}, nil
	case marshaler:
		return c.marshal(v)
	default:
		return c.fallback.Marshal(v)
	}
}

func (c codec) marshal(v marshaler) (mem.BufferSlice, error) {
	size := v.Size()
	if size == 0 {
		// A nil message has this size, and MarshalToSizedBuffer would panic on it.
		return mem.BufferSlice{mem.SliceBuffer(nil)}, nil
	}
	if mem.IsBelowBufferPoolingThreshold(size) {
		buf := make([]byte, size)
		if err := fill(v, buf); err != nil {
			return nil, err
		}
		return mem.BufferSlice{mem.SliceBuffer(buf)}, nil
	}
	buf := c.pool.Get(size)
	if err := fill(v, *buf); err != nil {
		c.pool.Put(buf)
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(buf, c.pool)}, nil
}

func fill(v marshaler, buf []byte) error {
	n, err := v.MarshalToSizedBuffer(buf)
	if err != nil {
		return fmt.Errorf("codec: marshal %T: %w", v, err)
	}
	if n != len(buf) {
		// The front of the buffer was not written. The message changed meanwhile.
		return fmt.Errorf("codec: marshal %T: %d bytes written, size is %d", v, n, len(buf))
	}
	return nil
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *Raw:
		*v = data.Materialize()
		return nil
	case unmarshaler:
		buf := data.MaterializeToBuffer(c.pool)
		defer buf.Free()
		v.Reset()
		if err := v.Unmarshal(buf.ReadOnlyData()); err != nil {
			return fmt.Errorf("codec: unmarshal %T: %w", v, err)
		}
		return nil
	default:
		return c.fallback.Unmarshal(data, v)
	}
}
