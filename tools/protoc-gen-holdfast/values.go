package main

import (
	"fmt"
	"strings"

	"github.com/gogo/protobuf/gogoproto"
	"github.com/gogo/protobuf/protoc-gen-gogo/descriptor"
	"github.com/gogo/protobuf/protoc-gen-gogo/generator"
)

// owns tells whether one value of the field has memory of its own, so that assigning it does
// not copy it. Strings have none that could change.
func (p *copier) owns(field *descriptor.FieldDescriptorProto) bool {
	return field.IsMessage() || field.IsBytes()
}

// single copies one value, where dst already holds what assignment gives.
func (p *copier) single(field *descriptor.FieldDescriptorProto, dst, src string) {
	switch {
	case field.IsMessage():
		msg, ok := p.ObjectNamed(field.GetTypeName()).(*generator.Descriptor)
		if !ok {
			p.Fail("not a message:", field.GetTypeName())
		}
		p.messageValue(msg, gogoproto.IsNullable(field), dst, src)
	case field.IsBytes():
		p.printf("%s = %s.Clone(%s)", dst, p.std("bytes"), src)
	}
}

func (p *copier) messageValue(msg *generator.Descriptor, pointer bool, dst, src string) {
	wellKnown := msg.File().GetPackage() == "google.protobuf"
	switch {
	case wellKnown && pointer:
		p.printf("if %s != nil {\n%s = &%s\n}", src, dst, p.wellKnown(msg, src))
	case wellKnown:
		p.printf("%s = %s", dst, p.wellKnown(msg, src))
	case pointer:
		p.printf("%s = %s.Copy()", dst, src)
	default:
		p.printf("%s.CopyInto(&%s)", src, dst)
	}
}

// wellKnown returns a literal that copies one of Google's flat messages, which have no Copy.
// It goes field by field: marshalling one writes to its XXX_sizecache, so that a copy of the
// whole struct would race with readers.
func (p *copier) wellKnown(msg *generator.Descriptor, src string) string {
	var b strings.Builder
	b.WriteString(p.typeName(msg) + "{")
	for _, field := range msg.Field {
		if field.IsMessage() || field.IsRepeated() || field.OneofIndex != nil {
			p.Fail(msg.GetName(), "is not flat and cannot be copied")
		}
		name := generator.CamelCase(field.GetName())
		if field.IsBytes() {
			fmt.Fprintf(&b, "%s: %s.Clone(%s.%s), ", name, p.std("bytes"), src, name)
		} else {
			fmt.Fprintf(&b, "%s: %s.%s, ", name, src, name)
		}
	}
	fmt.Fprintf(&b, "XXX_unrecognized: %s.Clone(%s.XXX_unrecognized)}", p.std("bytes"), src)
	return b.String()
}
