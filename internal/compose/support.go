package compose

import (
	"fmt"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// keys says which keys of a mapping are carried over, and what of the values. A nil value is
// carried over with all that is below it. The elements of a list are held against the same keys.
type keys map[string]keys

// each stands for every key of a mapping whose keys are the user's own names.
const each = "*"

// carriedKeys returns all that has a place in a DeployRequest, in compose-go's long form.
func carriedKeys() keys {
	return keys{
		"services": {each: serviceKeys()},
		"networks": {each: {
			"name": nil, "external": nil, "driver": nil, "driver_opts": nil, "internal": nil,
			"attachable": nil, "enable_ipv6": nil, "labels": nil,
			"ipam": {
				"driver": nil, "options": nil,
				"config": {"subnet": nil, "ip_range": nil, "gateway": nil, "aux_addresses": nil},
			},
		}},
		"volumes": {each: {"name": nil, "external": nil, "driver": nil, "driver_opts": nil, "labels": nil}},
		"secrets": {each: {
			"name": nil, "external": nil, "file": nil, "environment": nil, "labels": nil,
			"driver": nil, "driver_opts": nil, "template_driver": nil,
			types.SecretConfigXValue: nil, // the value of environment, as compose-go found it
		}},
		"configs": {each: {
			"name": nil, "external": nil, "file": nil, "environment": nil, "content": nil,
			"labels": nil, "template_driver": nil,
		}},
	}
}

// externalKeys returns what is carried over of a network, volume, secret or config that is external.
func externalKeys() keys {
	return keys{"name": nil, "external": nil}
}

// serviceKeys returns what is carried over of a service.
func serviceKeys() keys {
	return keys{
		"image": nil, "command": nil, "entrypoint": nil, "environment": nil, "env_file": nil,
		"labels": nil, "label_file": nil, "hostname": nil, "user": nil, "working_dir": nil,
		"stop_signal": nil, "stop_grace_period": nil, "tty": nil, "stdin_open": nil, "read_only": nil,
		"init": nil, "isolation": nil, "sysctls": nil, "cap_add": nil, "cap_drop": nil,
		"oom_score_adj": nil, "dns": nil, "dns_search": nil, "dns_opt": nil, "extra_hosts": nil,
		"restart":         nil, // unless deploy.restart_policy is there
		"network_mode":    nil, // only none
		"ulimits":         {each: {"soft": nil, "hard": nil}},
		"credential_spec": {"config": nil, "file": nil, "registry": nil},
		"logging":         {"driver": nil, "options": nil},
		"healthcheck": {
			"test": nil, "interval": nil, "timeout": nil, "retries": nil, "start_period": nil,
			"start_interval": nil, "disable": nil,
		},
		"networks": {each: {"aliases": nil, "driver_opts": nil, "use_service_name_alias": nil}},
		"ports":    {"name": nil, "target": nil, "published": nil, "protocol": nil, "mode": nil},
		"secrets":  {"source": nil, "target": nil, "uid": nil, "gid": nil, "mode": nil},
		"configs":  {"source": nil, "target": nil, "uid": nil, "gid": nil, "mode": nil},
		"volumes": {
			"type": nil, "source": nil, "target": nil, "read_only": nil, "consistency": nil,
			"bind":   {"propagation": nil, "create_host_path": nil, "recursive": nil},
			"volume": {"nocopy": nil, "subpath": nil},
			"tmpfs":  {"size": nil, "mode": nil},
		},
		"deploy": deployKeys(),
	}
}

// deployKeys returns what is carried over of a service's deploy.
func deployKeys() keys {
	return keys{
		"mode": nil, "replicas": nil, "endpoint_mode": nil, "labels": nil,
		"update_config":   updateKeys(),
		"rollback_config": updateKeys(),
		"restart_policy":  {"condition": nil, "delay": nil, "max_attempts": nil, "window": nil},
		"placement": {
			"constraints": nil, "preferences": {"spread": nil}, "max_replicas_per_node": nil,
		},
		"resources": {
			"limits": {"cpus": nil, "memory": nil, "pids": nil},
			"reservations": {
				"cpus": nil, "memory": nil,
				"generic_resources": {"discrete_resource_spec": {"kind": nil, "value": nil}},
			},
		},
	}
}

// updateKeys returns what is carried over of update_config and rollback_config.
func updateKeys() keys {
	return keys{
		"parallelism": nil, "delay": nil, "failure_action": nil, "monitor": nil,
		"max_failure_ratio": nil, "order": nil,
	}
}

// prune takes out of node what is not in k, and gives the path of each such key to dropped,
// except those of extensions (x-*).
func (k keys) prune(node any, path string, dropped func(path string)) {
	if k == nil {
		return
	}
	switch node := node.(type) {
	case map[string]any:
		k.pruneMapping(node, path, dropped)
	case []any:
		for i, element := range node {
			k.prune(element, fmt.Sprintf("%s[%d]", path, i), dropped)
		}
	}
}

func (k keys) pruneMapping(node map[string]any, path string, dropped func(path string)) {
	if external, _ := node["external"].(bool); external {
		k = externalKeys()
	}
	all, userNames := k[each]
	for key, value := range node {
		below, carried := k[key]
		if userNames {
			below, carried = all, true
		}
		// compose-go writes an OptOut where a bind mount in short form says nothing; Docker's
		// stacks do not create the folder then. A file's own value is a bool.
		if _, implied := value.(types.OptOut); implied {
			delete(node, key)
			continue
		}
		at := strings.TrimPrefix(path+"."+key, ".")
		if carried {
			below.prune(value, at, dropped)
			continue
		}
		delete(node, key)
		if !strings.HasPrefix(key, "x-") {
			dropped(at)
		}
	}
}
