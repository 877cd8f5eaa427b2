package compose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// effective writes what is carried over as a Compose file of its own: merged, with its variables
// replaced, its env files read and only the services of the profiles that are on. Read again, it
// gives the same request, without any variable but those that secrets and configs are made of.
//
// It has what a secret is made of, the name of a file or of a variable, but never its content.
func (c *converter) effective() (string, error) {
	sections, err := c.sections()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, name := range []string{"services", "networks", "volumes", "secrets", "configs"} {
		section, ok := sections[name].(map[string]any)
		if !ok || len(section) == 0 {
			continue
		}
		for key, one := range section {
			section[key] = literal(one)
		}
		text, err := json.Marshal(map[string]any{name: section})
		if err == nil {
			// YAML takes this one for the end of a line, JSON does not.
			text, err = yaml.JSONToYAML(bytes.ReplaceAll(text, []byte("\u0085"), []byte(`\u0085`)))
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		out.Write(text)
	}
	return out.String(), nil
}

// sections are compose-go's project as a tree. Its JSON leaves out the content of secrets, and
// that of configs that are made of a variable.
func (c *converter) sections() (map[string]any, error) {
	data, err := c.project.MarshalJSON()
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var sections map[string]any
	if err := decoder.Decode(&sections); err != nil {
		return nil, err
	}
	for key, service := range mappings(sections, "services") {
		c.tidyService(key, service)
	}
	for _, network := range mappings(sections, "networks") {
		dropEmpty(network, "ipam")
	}
	for _, secret := range mappings(sections, "secrets") {
		delete(secret, "content") // whatever becomes of compose-go
	}
	return sections, nil
}

// tidyService takes out what compose-go writes of a service where the files say nothing, and
// puts in what it has lost.
func (c *converter) tidyService(key string, service map[string]any) {
	for _, name := range []string{"command", "entrypoint"} {
		if service[name] == nil {
			delete(service, name)
		}
	}
	deploy := mapping(service, "deploy")
	// compose-go keeps too few bits of these.
	for _, which := range []string{"limits", "reservations"} {
		if cpus := c.raw("services", key, "deploy", "resources", which, "cpus"); cpus != nil {
			mapping(deploy, "resources", which)["cpus"] = fmt.Sprint(cpus)
		}
	}
	dropEmpty(deploy, "placement", "resources")
	dropEmpty(service, "deploy")
	volumes, _ := service["volumes"].([]any)
	for i, v := range volumes {
		v, ok := v.(map[string]any)
		if !ok {
			continue
		}
		// compose-go leaves out what it takes for the default; Docker's stacks do not.
		if bind := c.project.Services[key].Volumes[i].Bind; bind != nil && bool(bind.CreateHostPath) {
			mapping(v, "bind")["create_host_path"] = true
		}
		dropEmpty(v, "bind", "volume")
	}
}

// dropEmpty takes out mappings that say nothing.
func dropEmpty(node map[string]any, keys ...string) {
	for _, key := range keys {
		if below, ok := node[key].(map[string]any); ok && len(below) == 0 {
			delete(node, key)
		}
	}
}

// mappings are those of a section, by their keys.
func mappings(sections map[string]any, name string) map[string]map[string]any {
	found := map[string]map[string]any{}
	for key, one := range mapping(sections, name) {
		if one, ok := one.(map[string]any); ok {
			found[key] = one
		}
	}
	return found
}

// mapping is the mapping at a path; an empty one of its own if there is none.
func mapping(node map[string]any, path ...string) map[string]any {
	for _, key := range path {
		below, ok := node[key].(map[string]any)
		if !ok {
			return map[string]any{}
		}
		node = below
	}
	return node
}

// literal doubles each $ of a value, so that it stands for itself when the file is read again.
// Keys have no variables.
func literal(node any) any {
	switch node := node.(type) {
	case string:
		return strings.ReplaceAll(node, "$", "$$")
	case []any:
		for i, element := range node {
			node[i] = literal(element)
		}
	case map[string]any:
		for key, value := range node {
			node[key] = literal(value)
		}
	}
	return node
}
