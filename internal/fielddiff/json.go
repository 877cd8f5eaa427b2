package fielddiff

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// encodeField gives the whole value of a field in protobuf's JSON; "" if there is none.
func encodeField(fd protoreflect.FieldDescriptor, v protoreflect.Value) string {
	if !v.IsValid() {
		return ""
	}
	var b strings.Builder
	writeField(&b, fd, v)
	return b.String()
}

// encodeValue gives a value in protobuf's JSON: of a field, of a key or of an element.
func encodeValue(fd protoreflect.FieldDescriptor, v protoreflect.Value) string {
	if !v.IsValid() {
		return ""
	}
	var b strings.Builder
	writeValue(&b, fd, v)
	return b.String()
}

func writeField(b *strings.Builder, fd protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch {
	case fd.IsMap():
		b.WriteByte('{')
		for i, key := range sortedKeys(v.Map()) {
			if i > 0 {
				b.WriteByte(',')
			}
			writeText(b, key.String())
			b.WriteByte(':')
			writeValue(b, fd.MapValue(), v.Map().Get(key))
		}
		b.WriteByte('}')
	case fd.IsList():
		b.WriteByte('[')
		for i := range v.List().Len() {
			if i > 0 {
				b.WriteByte(',')
			}
			writeValue(b, fd, v.List().Get(i))
		}
		b.WriteByte(']')
	default:
		writeValue(b, fd, v)
	}
}

func writeValue(b *strings.Builder, fd protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		writeMessage(b, v.Message())
	case protoreflect.EnumKind:
		if value := fd.Enum().Values().ByNumber(v.Enum()); value != nil {
			writeText(b, string(value.Name()))
		} else {
			b.WriteString(strconv.Itoa(int(v.Enum())))
		}
	case protoreflect.StringKind:
		writeText(b, v.String())
	case protoreflect.BytesKind:
		writeText(b, base64.StdEncoding.EncodeToString(v.Bytes()))
	case protoreflect.FloatKind:
		writeFloat(b, v.Float(), 32)
	case protoreflect.DoubleKind:
		writeFloat(b, v.Float(), 64)
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind,
		protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		writeText(b, v.String())
	default: // booleans and numbers that JSON can hold
		b.WriteString(v.String())
	}
}

// writeMessage writes a message. An Any is written as the fields that it has: what is in it is
// not known here.
func writeMessage(b *strings.Builder, m protoreflect.Message) {
	if single(m.Descriptor()) {
		if data, err := protojson.Marshal(m.Interface()); err == nil {
			b.Write(data)
			return
		} // a time that there cannot be is written as the fields that it has
	}
	fields := m.Descriptor().Fields()
	b.WriteByte('{')
	first := true
	for i := range fields.Len() {
		fd := fields.Get(i)
		if !m.Has(fd) {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		writeText(b, fd.JSONName())
		b.WriteByte(':')
		writeField(b, fd, m.Get(fd))
	}
	b.WriteByte('}')
}

// writeText writes a string as protobuf's JSON does: what HTML minds is not escaped.
func writeText(b *strings.Builder, s string) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // cannot be: it is a string
		b.WriteString(strconv.Quote(s))
		return
	}
	b.Write(bytes.TrimSuffix(buf.Bytes(), []byte{'\n'}))
}

func writeFloat(b *strings.Builder, f float64, bits int) {
	switch {
	case math.IsNaN(f):
		b.WriteString(`"NaN"`)
	case math.IsInf(f, 1):
		b.WriteString(`"Infinity"`)
	case math.IsInf(f, -1):
		b.WriteString(`"-Infinity"`)
	default:
		b.WriteString(strconv.FormatFloat(f, 'g', -1, bits))
	}
}
