from sandbox_agent.cli import main

main()
