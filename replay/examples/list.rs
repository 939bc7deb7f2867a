fn main() {
    let args: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&args[1]).unwrap();
    let root = mostrace_replay::Name::new(args[2].as_bytes()).unwrap();
    let s = mostrace_replay::StraceSettings {
        folder: Some(root.clone()),
        root,
    };
    let r = mostrace_replay::read_strace(args[1].as_ref(), &text, &s).unwrap();
    for o in &r.operations {
        println!("{:?}", o);
    }
    println!("{:?}", r.left_out);
}
