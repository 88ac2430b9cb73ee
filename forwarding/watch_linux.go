package forwarding

// watchRemedy is what helps where a directory cannot be watched.
const watchRemedy = "raise the limits: sudo sysctl fs.inotify.max_user_instances=1024 fs.inotify.max_user_watches=524288"
