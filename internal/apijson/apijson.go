// Package apijson converts our messages to and from protobuf's JSON: lowerCamelCase names,
// 64-bit integers as strings, times in RFC 3339, bytes in base64, defaults left out.
//
// gogo's messages must never be given to protojson itself, which prints {} for times. They
// are encoded, decoded again as dynamic messages of the standard library, and those are
// printed. The names and form of the fields then come from the .proto files alone.
package apijson

import (
	"bytes"
	"encoding/json"
	"fmt"

	gogo "github.com/gogo/protobuf/proto"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"holdfast/internal/descriptors"
)

// Converter converts messages to JSON and back. It does not change once made, and any
// goroutine may use it.
type Converter struct {
	files *descriptors.Files
}

// New returns a converter for the messages that files describes.
func New(files *descriptors.Files) Converter {
	return Converter{files: files}
}

// Marshal returns a message as JSON, on one line. Equal messages give equal bytes. Fields
// that this version does not know are left out.
func (c Converter) Marshal(msg gogo.Message) ([]byte, error) {
	loose, err := c.marshal(msg)
	if err != nil {
		return nil, err
	}
	// protojson puts spaces at random, so that nobody relies on its form.
	var out bytes.Buffer
	if err := json.Compact(&out, loose); err != nil {
		return nil, fmt.Errorf("apijson: %w", err)
	}
	return out.Bytes(), nil
}

// MarshalIndent is Marshal for people to read: two spaces for each level, and no newline at
// the end.
func (c Converter) MarshalIndent(msg gogo.Message) ([]byte, error) {
	loose, err := c.marshal(msg)
	if err != nil {
		return nil, err
	}
	// Indent keeps spaces that it finds between a value's parts; Compact takes them away.
	var tight, out bytes.Buffer
	if err := json.Compact(&tight, loose); err != nil {
		return nil, fmt.Errorf("apijson: %w", err)
	}
	if err := json.Indent(&out, tight.Bytes(), "", "  "); err != nil {
		return nil, fmt.Errorf("apijson: %w", err)
	}
	return out.Bytes(), nil
}

func (c Converter) marshal(msg gogo.Message) ([]byte, error) {
	dynamic, err := c.dynamic(msg)
	if err != nil {
		return nil, err
	}
	data, err := gogo.Marshal(msg)
	if err != nil {
		return nil, fmt.Errorf("apijson: encode %T: %w", msg, err)
	}
	if err := proto.Unmarshal(data, dynamic); err != nil {
		return nil, fmt.Errorf("apijson: decode %T: %w", msg, err)
	}
	loose, err := protojson.MarshalOptions{Resolver: c.files}.Marshal(dynamic)
	if err != nil {
		return nil, fmt.Errorf("apijson: print %T: %w", msg, err)
	}
	return loose, nil
}

// Unmarshal sets msg to what the JSON says. Names may be as in the .proto files, too. A field
// that the message does not have is an error, as is anything after the one object.
func (c Converter) Unmarshal(data []byte, msg gogo.Message) error {
	dynamic, err := c.dynamic(msg)
	if err != nil {
		return err
	}
	if err := (protojson.UnmarshalOptions{Resolver: c.files}).Unmarshal(data, dynamic); err != nil {
		return fmt.Errorf("apijson: %w", err)
	}
	encoded, err := proto.Marshal(dynamic)
	if err != nil {
		return fmt.Errorf("apijson: encode %T: %w", msg, err)
	}
	msg.Reset()
	if err := gogo.Unmarshal(encoded, msg); err != nil {
		return fmt.Errorf("apijson: decode %T: %w", msg, err)
	}
	return nil
}

// dynamic returns an empty message of the standard library, of the type that msg has.
func (c Converter) dynamic(msg gogo.Message) (proto.Message, error) {
	typ, err := c.files.FindMessageByName(protoreflect.FullName(gogo.MessageName(msg)))
	if err != nil {
		return nil, fmt.Errorf("apijson: %T: %w", msg, err)
	}
	return typ.New().Interface(), nil
}
